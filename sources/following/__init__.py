"""The follower process: copies tables once, then applies the changes committed to them."""
