//! Tests that need more than one crate: `launch/`, `ui/`, `hygiene/`. See `README.md`.
