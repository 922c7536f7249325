"""The embedded API server: REST, watch, admission, access rules and the store behind them."""
