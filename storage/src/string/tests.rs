//! What string commands answer, record and store.
