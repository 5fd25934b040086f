//! Text that is safe to draw: sanitising, width, wrapping, shortening.
