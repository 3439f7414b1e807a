//! Here are records, give me bytes; here are bytes, give me records: the chunk format.
