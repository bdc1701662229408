use prescient_schema::State;

#[derive(State)]
struct Wheel {
    #[state(step = 0.1, show = "somehow")]
    angle: f32,
}

fn main() {}
