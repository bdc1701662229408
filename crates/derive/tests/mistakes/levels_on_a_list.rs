use prescient_schema::State;

#[derive(State)]
struct Car {
    #[state(step = 0.1, levels(0, 1, 2, 3))]
    path: Vec<f32>,
}

fn main() {}
