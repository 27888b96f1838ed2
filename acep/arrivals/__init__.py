"""Put events that come late, twice or not for good in the order of time, and keep the last of them."""
