//! Decoding messages of an agent: text chunks, which are nine tenths of the traffic, and other updates. Tests limit
//! allocations; times are only compared.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use parlor::acp::codec::Codec;
use parlor::model::{AgentEvent, AgentSpec};

const BATCH: usize = 1000;

/// Chunks of about 40 bytes, of one message or of one message each.
fn chunks(are_joined: bool) -> Vec<String> {
    (0..BATCH)
        .map(|at| {
            let message = if are_joined { 0 } else { at };
            format!(
                r#"{{"sessionId":"d931ce22-bc2c-4f10-87f0-872bc0e994f4","update":{{"sessionUpdate":"agent_message_chunk","messageId":"m{message}","content":{{"type":"text","text":"forty bytes of text, more or less, no {at}"}}}}}}"#
            )
        })
        .collect()
}

/// The updates of a turn that are not text.
fn mixed() -> Vec<String> {
    let session = "d931ce22-bc2c-4f10-87f0-872bc0e994f4";
    [
        r#"{"sessionUpdate":"tool_call","toolCallId":"t1","title":"Edit","kind":"edit","status":"pending","rawInput":{}}"#,
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"t1","title":"Edit a.rs","rawInput":{"file_path":"/w/a.rs","old_string":"one","new_string":"two"},"content":[{"type":"diff","path":"/w/a.rs","oldText":"one","newText":"two"}],"locations":[{"path":"/w/a.rs","line":3}]}"#,
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"t2","_meta":{"terminal_output_delta":{"terminal_id":"t2","data":"compiling\r\n"}}}"#,
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","rawOutput":{"stdout":"ok\n","exit_code":0}}"#,
        r#"{"sessionUpdate":"plan","entries":[{"content":"Look","priority":"high","status":"completed"},{"content":"Change","priority":"medium","status":"in_progress"}]}"#,
        r#"{"sessionUpdate":"usage_update","used":12000,"size":200000}"#,
        r#"{"sessionUpdate":"session_info_update","title":"A title"}"#,
    ]
    .iter()
    .map(|update| format!(r#"{{"sessionId":"{session}","update":{update}}}"#))
    .collect()
}

fn read(codec: &mut Codec, messages: &[String]) -> Vec<AgentEvent> {
    let mut out = Vec::new();
    for message in messages {
        codec.notification("session/update", Some(black_box(message)), &mut out);
    }
    out
}

fn decode(criterion: &mut Criterion) {
    for (name, messages) in
        [("chunks joined", chunks(true)), ("chunks apart", chunks(false)), ("mixed updates", mixed())]
    {
        let mut group = criterion.benchmark_group("decode");
        group.throughput(Throughput::Elements(messages.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter_batched_ref(
                || Codec::new(&AgentSpec::default()),
                |codec| black_box(read(codec, &messages)),
                BatchSize::SmallInput,
            );
        });
        group.finish();
    }
}

criterion_group!(benches, decode);
criterion_main!(benches);
