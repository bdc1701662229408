use prescient_schema::State;

#[derive(State)]
struct Car {
    #[state(float((4, 4, 7), (10, 5, 15), (4, 4, 7), (4, 4, 7)))]
    x: f32,
}

fn main() {}
