//! The smallest timeline that still fails: parts are taken away one by one, and stay away if the failure is of the same kind
//! without them. (The seed stays, but every part less makes another timeline of it, so each is tried and none is inferred.)

use crate::campaign::{Plan, ending_of};
use crate::options::Options;
use crate::runner::Ending;

/// Shrinks a failing seed; prints what is left and the line that replays it.
pub fn shrink(seed: u64, mut plan: Plan) -> anyhow::Result<Ending> {
    let wanted = ending_of(&plan.one(seed)?);
    if wanted == Ending::Passed {
        println!("seed {seed} of {} passes: there is nothing to shrink", plan.scenario);
        return Ok(Ending::Passed);
    }
    let mut tries = 1;
    loop {
        let before = plan.without.len();
        for part in options(seed, &plan)?.parts() {
            if plan.without.contains(&part) {
                continue;
            }
            let smaller =
                Plan { without: plan.without.iter().cloned().chain([part.clone()]).collect(), ..plan.clone() };
            tries += 1;
            if ending_of(&smaller.one(seed)?) == wanted {
                println!("{wanted:?} without {part}");
                plan = smaller;
            }
        }
        if plan.without.len() == before {
            break;
        }
    }
    println!("{tries} timelines tried; what is left:");
    println!("    {}", options(seed, &plan)?);
    let output = plan.one(seed)?;
    for line in String::from_utf8_lossy(&output.stdout).lines().skip(1) {
        println!("    {}", line.chars().take(1000).collect::<String>());
    }
    println!("replay with `{} --trace`", plan.replay_line(seed));
    Ok(wanted)
}

fn options(seed: u64, plan: &Plan) -> anyhow::Result<Options> {
    let mut options = Options::draw(seed, plan.scenario);
    for part in &plan.without {
        options.without(part)?;
    }
    Ok(options)
}
