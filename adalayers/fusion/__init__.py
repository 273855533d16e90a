"""Methods that fuse frozen hidden states, a file each."""
