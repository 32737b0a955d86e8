-- Version 5: when the operations of a series ran, and what the workers did as hashes.

ALTER TABLE operations ADD COLUMN first_start_ns INTEGER;
ALTER TABLE operations ADD COLUMN last_end_ns INTEGER;
ALTER TABLE workers ADD COLUMN stream_operations INTEGER;
ALTER TABLE workers ADD COLUMN stream_hash TEXT;
ALTER TABLE workers ADD COLUMN operations_hash TEXT;
ALTER TABLE recordings ADD COLUMN operations_hash TEXT;
