//! Device views.
