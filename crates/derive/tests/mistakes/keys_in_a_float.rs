use prescient_schema::State;

#[derive(State)]
struct Walker {
    #[state(keys)]
    keys: f32,
}

fn main() {}
