//! Saved records must stay readable: these texts are never changed, only extended.

use super::super::format::{decode, encode};
use crate::model::*;

fn check(record: &Record, text: &str) {
    assert_eq!(encode(record), text);
    assert_eq!(decode(text).as_ref(), Some(record), "{text}");
}

#[test]
fn records_have_this_format() {
    check(
        &Record::Prompt {
            text: "go".into(),
            is_again: false,
            blocks: Vec::new(),
            pasted: Vec::new(),
            typed: None,
        },
        r#"{"prompt":{"text":"go"}}"#,
    );
    check(
        &Record::Prompt {
            text: "see a\nb".into(),
            is_again: false,
            blocks: Vec::new(),
            pasted: std::iter::once(4..7).collect(),
            typed: None,
        },
        r#"{"prompt":{"text":"see a\nb","pasted":[{"start":4,"end":7}]}}"#,
    );
    let chunk = SessionUpdate::Chunk { role: Role::Thought, message: Some("m1".into()), text: "hm".into() };
    check(&Record::Update(chunk), r#"{"update":{"chunk":{"role":"thought","message":"m1","text":"hm"}}}"#);
    let chunk = SessionUpdate::Chunk { role: Role::SubagentMessage, message: None, text: "go".into() };
    check(&Record::Update(chunk), r#"{"update":{"chunk":{"role":"letter","text":"go"}}}"#);
    let mut patch = ToolCallPatch::new("t1".into());
    patch.is_announcement = true;
    patch.title = Patch::Set("Edit a.rs".into());
    patch.name = Patch::Clear;
    patch.kind = Patch::Set(ToolKind::Edit);
    patch.status = Patch::Set(ToolStatus::InProgress);
    let change = DiffChange::Texts { old: None, new: "x\n".into() };
    patch.content = Patch::Set(vec![ToolContent::Diff(FileDiff { path: "/a.rs".into(), change })]);
    patch.raw_output = Patch::Set(Raw("{\"a\":1}".into()));
    check(
        &Record::Update(SessionUpdate::Tool(Box::new(patch))),
        concat!(
            r#"{"update":{"tool":{"id":"t1","is_announcement":true,"title":"Edit a.rs","name":null,"kind":"edit","#,
            r#""status":"in_progress","content":[{"diff":{"path":"/a.rs","change":{"texts":{"new":"x\n"}}}}],"#,
            r#""raw_output":"{\"a\":1}"}}}"#,
        ),
    );
    let (title, detail) = ("Saved".to_owned(), None);
    check(
        &Record::notice(Severity::Info, title.clone(), detail.clone()),
        r#"{"notice":{"severity":"info","title":"Saved"}}"#,
    );
    let kind = NoticeKind::NotRestored;
    check(
        &Record::Notice { kind, severity: Severity::Info, title: title.clone(), detail },
        r#"{"notice":{"kind":"not_restored","severity":"info","title":"Saved"}}"#,
    );
    let (kind, severity) = (NoticeKind::NotReplayed(2), Severity::Info);
    check(
        &Record::Update(SessionUpdate::Notice { kind, severity, title, description: None }),
        r#"{"update":{"notice":{"kind":{"not_replayed":2},"severity":"info","title":"Saved"}}}"#,
    );
    let unknown = SessionUpdate::Unknown { name: "new_thing".into(), raw: Raw("{\"b\":2}".into()) };
    check(&Record::Update(unknown), r#"{"update":{"unknown":{"name":"new_thing","raw":"{\"b\":2}"}}}"#);
    let outcome = TurnOutcome::Stopped {
        reason: StopReason::Other("odd".into()),
        usage: None,
        took_ms: 12,
        cost: None,
    };
    check(
        &Record::TurnEnded(outcome),
        r#"{"turn_ended":{"stopped":{"reason":{"other":"odd"},"took_ms":12}}}"#,
    );
    let cost = Some(Cost { amount: 0.5, currency: "USD".into() });
    let outcome = TurnOutcome::Failed { error: "no".into(), fault: FaultKind::default(), took_ms: 3, cost };
    check(
        &Record::TurnEnded(outcome),
        r#"{"turn_ended":{"failed":{"error":"no","took_ms":3,"cost":{"amount":0.5,"currency":"USD"}}}}"#,
    );
    check(&Record::TurnEnded(TurnOutcome::Cut), r#"{"turn_ended":"cut"}"#);
    check(&Record::Replaced, r#""replaced""#);
    let update = SessionUpdate::Chunk { role: Role::Agent, message: None, text: "hi".into() };
    check(
        &Record::Inserted { back: 2, updates: vec![update] },
        r#"{"inserted":{"back":2,"updates":[{"chunk":{"role":"agent","text":"hi"}}]}}"#,
    );
    check(
        &Record::HandedOver { agent: "one".into(), text: "# So far".into() },
        r##"{"handed_over":{"agent":"one","text":"# So far"}}"##,
    );
    check(&Record::Archived { is_away: true }, r#"{"archived":{"is_away":true}}"#);
    let usage = Usage { used_tokens: 5, size_tokens: 10, cost: None };
    check(
        &Record::Update(SessionUpdate::Usage(usage)),
        r#"{"update":{"usage":{"used_tokens":5,"size_tokens":10}}}"#,
    );
}

#[test]
fn questions_have_this_format() {
    let option = PermissionOption { id: "y".into(), name: "Yes".into(), kind: PermissionKind::AllowOnce };
    let mut tool = Box::new(ToolCallPatch::new("t1".into()));
    tool.title = Patch::Set("Run".into());
    tool.name = Patch::Clear;
    tool.raw_input = Patch::Set(Raw("{\"n\":12345678901234567890}".into()));
    check(
        &Record::Asked { tool, options: vec![option.clone()] },
        concat!(
            r#"{"asked":{"id":"t1","is_announcement":false,"title":"Run","name":null,"#,
            r#""raw_input":"{\"n\":12345678901234567890}","#,
            r#""options":[{"id":"y","name":"Yes","kind":"allow_once"}]}}"#,
        ),
    );
    check(
        &Record::Decided {
            tool: "t1".into(),
            option: Some("Yes".into()),
            option_id: Some("y".into()),
            kind: Some(PermissionKind::AllowOnce),
            is_allow: true,
            by: Decider::User,
            rule: None,
        },
        concat!(
            r#"{"decided":{"tool":"t1","option":"Yes","option_id":"y","kind":"allow_once","#,
            r#""is_allow":true,"by":"user"}}"#,
        ),
    );
    let request = ElicitationRequest {
        session: None,
        tool: Some("t1".into()),
        message: String::new(),
        mode: ElicitationMode::Form {
            title: None,
            description: None,
            fields: vec![FormField {
                key: "k".into(),
                title: "K".into(),
                description: None,
                is_required: true,
                kind: FieldKind::Boolean { default: Some(true) },
            }],
        },
    };
    check(
        &Record::Answered {
            question: "q".into(),
            answer: "a".into(),
            request: Some(Box::new(request)),
            by: Decider::TurnCancelled,
        },
        concat!(
            r#"{"answered":{"question":"q","answer":"a","request":{"tool":"t1","mode":{"form":{"title":null,"#,
            r#""description":null,"fields":[{"key":"k","title":"K","description":null,"is_required":true,"#,
            r#""kind":{"boolean":{"default":true}}}]}}},"by":"turn_cancelled"}}"#,
        ),
    );
    let question = AccessQuestion {
        reason: "Why".into(),
        options: vec![option],
        chosen: Some("y".into()),
        by: Decider::User,
    };
    let access = Access::Read { path: "/a".into() };
    let mut record =
        AccessRecord::allowed(access, Grant::ReadFile("/a".into()).allowance(GrantScope::Session));
    record.question = Some(Box::new(question));
    check(
        &Record::Access(Box::new(record)),
        concat!(
            r#"{"access":{"access":{"read":{"path":"/a"}},"outcome":{"allowed":{"grant":"session"}},"#,
            r#""rule":"read /a","question":{"reason":"Why","#,
            r#""options":[{"id":"y","name":"Yes","kind":"allow_once"}],"chosen":"y","by":"user"}}}"#,
        ),
    );
}

#[test]
fn questions_of_earlier_versions_are_read() {
    let tool = Box::new(ToolCallPatch::new("t1".into()));
    check(&Record::Asked { tool, options: Vec::new() }, r#"{"asked":{"id":"t1","is_announcement":false}}"#);
    check(
        &Record::Decided {
            tool: "t1".into(),
            option: Some("Yes".into()),
            option_id: None,
            kind: None,
            is_allow: true,
            by: Decider::Unknown,
            rule: None,
        },
        r#"{"decided":{"tool":"t1","option":"Yes","is_allow":true}}"#,
    );
    check(
        &Record::Answered { question: "q".into(), answer: "a".into(), request: None, by: Decider::Unknown },
        r#"{"answered":{"question":"q","answer":"a"}}"#,
    );
    let access = Access::Read { path: "/a".into() };
    check(
        &Record::Access(Box::new(AccessRecord::new(access, AccessOutcome::Allowed(AllowedBy::You)))),
        r#"{"access":{"access":{"read":{"path":"/a"}},"outcome":{"allowed":"you"}}}"#,
    );
}

#[test]
fn unknown_fields_are_ignored() {
    let record = decode(r#"{"prompt":{"text":"go","mood":"good"}}"#);
    assert_eq!(
        record,
        Some(Record::Prompt {
            text: "go".into(),
            is_again: false,
            blocks: Vec::new(),
            pasted: Vec::new(),
            typed: None
        })
    );
    assert_eq!(decode(r#"{"dance":{}}"#), None);
}

#[test]
fn an_oversized_event_is_replaced_by_a_notice() {
    let text = encode(&Record::Prompt {
        text: "x".repeat(65 << 20),
        is_again: false,
        blocks: Vec::new(),
        pasted: Vec::new(),
        typed: None,
    });
    assert!(text.len() < 200 && text.contains("65 MiB was too large"), "{text}");
}
