"""The scheduler's neighbours: grouper, binder, controllers, admission, reservation, platform."""
