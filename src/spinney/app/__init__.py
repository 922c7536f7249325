"""Put an installation together: components, the laptop cluster, servers, rendering."""
