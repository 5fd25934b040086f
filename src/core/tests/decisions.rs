//! The record of a question: what was shown, which answer was given, by whom and by which rule.

use super::policy::restored;
use super::support::*;
use crate::core::lifecycle::operations;
use crate::core::*;
use crate::model::*;

/// The recorded questions, without the prompt and the ends of turns.
fn records(app: &mut TestCore) -> Vec<Record> {
    let is_question = |record: &Record| {
        matches!(
            record,
            Record::Asked { .. } | Record::Decided { .. } | Record::Answered { .. } | Record::Access(_)
        )
    };
    app.recorded().into_iter().map(|event| event.record).filter(is_question).collect()
}

/// Who decided each question.
fn deciders(app: &mut TestCore) -> Vec<Decider> {
    let by = |record| match record {
        Record::Decided { by, .. } | Record::Answered { by, .. } => Some(by),
        Record::Access(access) => access.question.map(|question| question.by),
        _ => None,
    };
    records(app).into_iter().filter_map(by).collect()
}

#[test]
fn a_permission_is_recorded_with_options_choice_and_decider() {
    let mut app = TestCore::running();
    app.ask(1, permission("a")).choose(Some(0));
    let records = records(&mut app);
    let [Record::Asked { tool, options }, Record::Decided { option_id, kind, by, .. }] = &records[..] else {
        panic!("{records:?}");
    };
    assert_eq!(tool.id, "a".into());
    let names: Vec<(&str, &str)> = options.iter().map(|it| (it.id.as_str(), it.name.as_str())).collect();
    assert_eq!(names, [("yes", "the yes"), ("no", "the no")]);
    let chosen = (option_id.as_deref(), *kind, *by);
    assert_eq!(chosen, (Some("yes"), Some(PermissionKind::AllowOnce), Decider::User));
    let decision = |session: &Session| {
        let call = session.tool_by_id(&"a".into()).and_then(|id| session.tool_call(id)).unwrap();
        call.decision.as_ref().map(Decision::description)
    };
    assert_eq!(decision(app.session()).as_deref(), Some("Allowed once by the user"));
    let live = decision(app.session());
    assert_eq!(decision(&restored(&mut app)), live);
}

#[test]
fn each_way_to_cancel_a_question_is_recorded() {
    type Step = fn(&mut TestCore);
    let cases: [(Step, Decider); 5] = [
        (
            |app| {
                for request_id in [1, 2, 3] {
                    app.agent(AgentEvent::RequestWithdrawn(RequestId(request_id)));
                }
            },
            Decider::Agent,
        ),
        (|app| _ = app.cancel(), Decider::TurnCancelled),
        (|app| _ = app.crash(), Decider::ConnectionLost),
        (|app| _ = app.flow(|state, cx| operations::restart_agent(state, KEY, cx)), Decider::AgentStopped),
        (|app| _ = app.flow(operations::quit), Decider::SessionClosed),
    ];
    for (step, by) in cases {
        let mut app = TestCore::running();
        app.ask(1, permission("a")).ask(2, question()).ask(3, run_line("make"));
        step(&mut app);
        assert_eq!(deciders(&mut app), [by; 3]);
        assert!(app.session().requests.is_empty(), "{by:?}");
        let items = |session: &Session| {
            let texts = session.transcript.items().iter().filter_map(|item| match &item.body {
                ItemBody::Answered { answer, .. } => Some(answer.clone()),
                ItemBody::Tool(call) => Some(format!(
                    "{:?} {:?}",
                    call.decision,
                    call.accesses.iter().map(AccessRecord::description).collect::<Vec<_>>()
                )),
                _ => None,
            });
            texts.collect::<Vec<_>>()
        };
        let live = items(app.session());
        assert_eq!(live.len(), 3, "{live:?}");
        assert!(live[1] == format!("not answered: {}", by.reason()), "{live:?}");
        assert!(live[2].contains(by.reason()), "{live:?}");
        assert_eq!(items(&restored(&mut app)), live);
    }
}

#[test]
fn a_question_during_a_cancel_is_recorded() {
    let mut app = TestCore::running();
    app.cancel().ask(1, permission("a")).ask(2, question());
    assert_eq!(deciders(&mut app), [Decider::TurnCancelled; 2]);
}

#[test]
fn a_page_completed_elsewhere_is_recorded() {
    let mut app = TestCore::running();
    let mode = ElicitationMode::Url { id: "p".into(), url: "https://example.org/".into() };
    let request = ElicitationRequest { session: Some(ID.into()), tool: None, message: "Visit.".into(), mode };
    app.ask(1, AgentRequest::Elicitation(request));
    app.agent(AgentEvent::ElicitationComplete("p".into()));
    assert_eq!(deciders(&mut app), [Decider::Elsewhere]);
    let shown = matches!(&records(&mut app)[..], [Record::Answered { request: Some(request), .. }]
        if matches!(&request.mode, ElicitationMode::Url { url, .. } if url == "https://example.org/"));
    assert!(shown);
}

#[test]
fn secrets_of_a_form_are_not_recorded() {
    let field = |key: &str, default: &str| FormField {
        key: key.into(),
        title: key.into(),
        description: None,
        is_required: true,
        kind: FieldKind::Text {
            min_chars: None,
            max_chars: None,
            pattern: None,
            format: None,
            default: Some(default.into()),
        },
    };
    let mode = ElicitationMode::Form {
        title: Some("Sign in".into()),
        description: None,
        fields: vec![field("name", "ada"), field("password", "hunter1")],
    };
    let request = ElicitationRequest { session: Some(ID.into()), tool: None, message: "Who?".into(), mode };
    let mut app = TestCore::running();
    app.ask(1, AgentRequest::Elicitation(request));
    let values = [("name", "bob"), ("password", "hunter2")];
    let values = values.map(|(key, value)| (key.to_owned(), FieldValue::Text(value.to_owned()))).to_vec();
    app.give(UserAnswer::Values(values));
    let text = format!("{:?}", records(&mut app));
    assert!(text.contains("ada") && text.contains("bob") && text.contains("Sign in"), "{text}");
    assert!(!text.contains("hunter"), "{text}");
}

#[test]
fn a_command_is_recorded_with_its_question_or_rule() {
    let mut app = TestCore::running();
    app.ask(1, run_line("make")).ask(2, run_line("make")).choose(Some(1));
    app.terminal_started(1, "x", "make");
    app.terminal_started(2, "y", "make");
    app.ask(3, run_line("make"));
    app.terminal_started(3, "z", "make");
    let records = records(&mut app);
    let accesses: Vec<&AccessRecord> = records
        .iter()
        .filter_map(|record| match record {
            Record::Access(access) => Some(&**access),
            _ => None,
        })
        .collect();
    let [first, second, third] = accesses[..] else { panic!("{records:?}") };
    let question = first.question.as_ref().unwrap();
    assert_eq!((question.chosen.as_deref(), question.by), (Some("session"), Decider::User));
    assert_eq!(
        question.reason,
        "Run a command? The command is not part of a tool call approved in this turn."
    );
    let names: Vec<&str> = question.options.iter().map(|option| option.name.as_str()).collect();
    assert_eq!(names.first(), Some(&"Allow once"));
    assert_eq!(names.last(), Some(&"Reject"));
    assert_eq!(first.description(), "run by parlor, allowed by the user for this session");
    let rule = "run by parlor, allowed by the rule `run \"make\" in /code/shop` of this session";
    assert_eq!(second.description(), rule);
    assert_eq!(second.question.as_ref().map(|question| question.by), Some(Decider::Rule));
    assert_eq!(third.description(), rule);
    assert_eq!(third.question, None);
}

#[test]
fn a_command_allowed_by_configuration_names_the_setting() {
    let mut app = TestCore::running();
    app.state.setup.policy.ask_commands = false;
    app.ask(1, run_line("make"));
    app.terminal_started(1, "x", "make");
    let records = records(&mut app);
    let [Record::Access(access)] = &records[..] else { panic!("{records:?}") };
    assert_eq!(
        access.description(),
        "run by parlor, allowed by the rule `policy.ask_commands = false` of the configuration"
    );
}
