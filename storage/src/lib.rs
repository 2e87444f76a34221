//! Placeholder opened by the first commit.
