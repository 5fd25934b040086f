//! The guided tour, one turn per step.

use super::super::turn::{Step, Turn};
use super::{talk, work};

const STEPS: usize = 5;

pub(super) fn begin(turn: &Turn) -> Step {
    set(turn, 1);
    turn.think("A new user. Start with how a turn looks, and keep it short.")?;
    turn.say(
        "# Welcome to parlor\n\n\
         I am a scripted agent, connected over the same Agent Client Protocol as real agents. This tour \
         shows the parts of a session:\n\n\
         - Answers **stream in** as I write them. Scroll up at any time; the view stays where you are \
         reading.\n\
         - The line above this message is a *thought*. It is folded until you open it.\n\
         - You can cancel a turn at any time, and type while it is running. Prompts that you send during a \
         turn are queued.\n\n",
    )?;
    invite(turn, 1, "a plan")
}

pub(super) fn next(turn: &Turn) -> Step {
    let step = turn.live.state().saved.tour + 1;
    match step {
        2 => {
            turn.say("Agents often publish a plan first and update it as they work.\n\n")?;
            work::plan(turn)?;
            set(turn, 2);
            invite(turn, 2, "an edit that needs your permission")
        }
        3 => {
            turn.say(
                "Now an edit. I need your permission first, and the dialog shows the diff. You can allow or \
                 reject it.\n\n",
            )?;
            work::edit(turn)?;
            set(turn, 3);
            invite(turn, 3, "a command in a terminal")
        }
        4 => {
            turn.say("Next, a command. Its output streams in with colours.\n\n")?;
            work::run(turn)?;
            set(turn, 4);
            invite(turn, 4, "a question")
        }
        5 => {
            turn.say("Agents can ask questions in a form.\n\n")?;
            talk::ask(turn, "")?;
            set(turn, 0);
            turn.say(
                "\n\
                 That is the end of the tour. Also try `/fix` for a complete task, `/long` for Markdown, \
                 `/fail` for failures, `/modes` for modes and models, and `/help` for all commands.\n\n\
                 To use a real agent, quit and run `parlor` in a project folder. It lists the agents \
                 installed on your machine.\n",
            )
        }
        _ => begin(turn),
    }
}

fn set(turn: &Turn, step: usize) {
    turn.live.state().saved.tour = step;
}

fn invite(turn: &Turn, step: usize, what: &str) -> Step {
    turn.say(&format!("\n*Step {step} of {STEPS}.* Send **next** for {what}.\n"))
}
