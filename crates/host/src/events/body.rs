//! A client over SSE.
