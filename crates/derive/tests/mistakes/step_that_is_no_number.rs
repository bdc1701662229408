use prescient_schema::State;

#[derive(State)]
struct Car {
    #[state(step = "one hundredth")]
    x: f32,
}

fn main() {}
