use prescient_schema::{Ref, State};

#[derive(State)]
struct Car {
    driver: Ref<u8>,
}

fn main() {}
