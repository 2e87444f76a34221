//! The seed runner's entry. Outside the simulator's build it only says how to start it.

fn main() {
    eprintln!("run the simulator with `cargo sim -- run --seeds 0..100`");
}
