//! Tests that judge measured times. In the full tier they run one at a time, when nothing else does: others skip `quiet::`.

mod adaptive;
mod hash_cast;
mod load;
mod network;
mod times;
