//! The server as its own first customer: its metrics become series with `service="tacho"`.
