use prescient_schema::State;

#[derive(State)]
struct Car<T> {
    x: T,
}

fn main() {}
