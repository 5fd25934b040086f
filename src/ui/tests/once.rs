//! Property test: every request of an agent gets exactly one response while a user also answers in the inbox.

use proptest::prelude::*;

use crate::core::tests::once::{Step, World, step};
use crate::model::Action;
use crate::ui::App;
use crate::ui::Event;

#[derive(Debug, Clone, Copy)]
enum Input {
    Step(Step),
    Key(Action),
}

fn input() -> impl Strategy<Value = Input> {
    let key = prop_oneof![
        2 => Just(Action::OpenAttention),
        1 => Just(Action::Down),
        1 => Just(Action::FullScreen),
        1 => Just(Action::Accept),
        1 => Just(Action::Choose(1)),
    ];
    prop_oneof![
        17 => step().prop_map(Input::Step),
        1 => key.prop_map(Input::Key),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn answers_in_the_inbox_are_given_once(inputs in proptest::collection::vec(input(), 1..120)) {
        let mut world = World::<App>::new();
        for input in inputs {
            match input {
                Input::Step(step) => _ = world.step(step),
                Input::Key(action) => {
                    world.play(Event::Input);
                    world.play(Event::Act(action));
                }
            }
            world.check();
        }
        world.finish();
    }
}
