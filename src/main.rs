//! parlor.
fn main() {}
