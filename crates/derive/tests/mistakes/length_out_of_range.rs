use prescient_schema::State;

#[derive(State)]
struct Car {
    #[state(max_len = 100000)]
    name: String,
}

fn main() {}
