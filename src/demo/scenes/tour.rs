//! The tour: a conversation in steps, each a turn of its own.

use super::super::turn::{Step, Turn};
use super::{talk, work};

const STEPS: usize = 5;

/// From the beginning.
pub(super) fn begin(turn: &Turn) -> Step {
    set(turn, 1);
    turn.think("A newcomer. Show how a turn looks first, and keep it short.")?;
    turn.say(
        "# Welcome\n\n\
         You are talking to an agent over the Agent Client Protocol. I am a script, but everything on this \
         screen came over the same wire that a real agent uses.\n\n\
         What you see while I write:\n\n\
         - this text arrives **in pieces**; scroll up and it stays where you read\n\
         - the line above was a *thought*; it is folded until you open it\n\
         - **Esc** stops me at any moment; try it in a long answer\n\
         - you can type while I work: Enter puts your prompt in the queue\n\n",
    )?;
    invite(turn, 1, "a plan")
}

/// The next step.
pub(super) fn next(turn: &Turn) -> Step {
    let step = turn.live.state().kept.tour + 1;
    match step {
        2 => {
            turn.say(
                "Agents often say first what they are going to do. Here is a plan; watch it move while I \
                 work it off.\n\n",
            )?;
            work::plan(turn)?;
            set(turn, 2);
            invite(turn, 2, "an edit that needs your permission")
        }
        3 => {
            turn.say(
                "Now an edit. I ask before I change anything, and you see the change before you say yes. \
                 Saying no is fine too.\n\n",
            )?;
            work::edit(turn)?;
            set(turn, 3);
            invite(turn, 3, "a command in a terminal")
        }
        4 => {
            turn.say("Next, a command. Its output appears as it runs, with its colours.\n\n")?;
            work::run(turn)?;
            set(turn, 4);
            invite(turn, 4, "a question to you")
        }
        5 => {
            turn.say("Sometimes an agent needs to know something. Then it asks.\n\n")?;
            talk::ask(turn, "")?;
            set(turn, 0);
            turn.say(
                "\nThat was the tour. More to try: `/long` for a long answer, `/fail` for a failure, \
                 `/modes` for modes and models, `/help` for all of it.\n\n\
                 When you are ready for a real agent, quit with Ctrl+Q and start parlor in the folder of a \
                 project. It lists the agents that it finds on your machine.\n",
            )
        }
        _ => begin(turn),
    }
}

fn set(turn: &Turn, step: usize) {
    turn.live.state().kept.tour = step;
}

fn invite(turn: &Turn, step: usize, what: &str) -> Step {
    turn.say(&format!("\n*Step {step} of {STEPS}.* Say **next** for {what}.\n"))
}
