//! How answers look in a terminal: tables, plots, amounts.
