//! Here is a batch, keep it; here is a range, give me records: journal, open chunks, drivers' waist.
