//! From a question to its message, and back from a response.

use hickory_proto::op::{Message, MessageType};
use hickory_proto::rr::RecordType;
use proptest::prelude::*;
use proto::query::Edns;

use super::*;

fn message(plan: &Plan, question: Question) -> Vec<u8> {
    let mut octets = b"before".to_vec();
    plan.write_query(question, 0, &mut octets);
    octets.split_off(6)
}

/// The response that echoes the question and says no more.
fn response(query: &[u8]) -> Vec<u8> {
    let mut message = Message::from_vec(query).unwrap();
    message.metadata.message_type = MessageType::Response;
    message.to_vec().unwrap()
}

fn mixed() -> QuestionSource {
    QuestionSource {
        qtypes: Some("AAAA=1,HTTPS=1".parse().unwrap()),
        labels: Some(Labels::random(Some((1, 20)), 5).unwrap()),
        ..QuestionSource::default()
    }
}

#[test]
fn a_generated_question_is_the_template_with_a_label_and_another_qtype() {
    let plan = plan("www.Example.test MX +do", mixed());
    let template = Message::from_vec(&message(&plan, Question::plain(0))).unwrap();
    assert_eq!(template.queries[0].name().to_ascii(), "www.Example.test.");
    let mut names = HashSet::new();
    for choice in choices(&plan, 0).take(2_000) {
        let made = Message::from_vec(&message(&plan, choice.question)).unwrap();
        let [asked] = &made.queries[..] else {
            panic!("one question");
        };
        let name = asked.name().to_ascii();
        let (label, rest) = name.split_once('.').unwrap();
        assert_eq!(rest, "www.Example.test.");
        assert!((1..=20).contains(&label.len()));
        let qtype = [RecordType::AAAA, RecordType::HTTPS][usize::from(choice.question.qtype()) - 1];
        assert_eq!(asked.query_type(), qtype);
        assert_eq!(made.edns, template.edns);
        names.insert(label.to_owned());
    }
    assert!(names.len() > 1_000);
}

#[test]
fn a_message_without_room_for_an_id_is_copied_as_it_is_and_never_answered() {
    let mut questions = QuestionSet::new();
    for octets in [&b"x"[..], b"", b"xyz", &[7; 100]] {
        questions.push_any(octets, 0);
    }
    let whole = [&[1, 2][..], &[7; 98]].concat();
    let expected = [&b"x"[..], b"", &[1, 2, b'z'], &whole];
    for order in [Order::InOrder, Order::Shuffled] {
        let source = QuestionSource {
            order,
            ..QuestionSource::default()
        };
        let plan = Plan {
            questions: Arc::new(questions.clone()),
            workers: 1,
            ..plan("a A", source)
        };
        let mut seen = [0; 4];
        for choice in choices(&plan, 0).take(8) {
            let template = choice.question.template as usize;
            seen[template] += 1;
            let (mut octets, mut stream) = (Vec::new(), Vec::new());
            plan.write_query(choice.question, 0x0102, &mut octets);
            plan.write_framed_query(choice.question, 0x0102, &mut stream);
            assert_eq!(octets, expected[template]);
            let length = octets.len() as u16;
            assert_eq!(stream, [&length.to_be_bytes()[..], &octets].concat());
            let mut scratch = Vec::new();
            assert!(!plan.is_answered_by(choice.question, &[0x80; 12], &mut scratch));
        }
        assert_eq!(seen, [2; 4]);
    }
}

#[test]
fn a_response_matches_the_question_that_was_generated_and_no_other() {
    let plan = plan("www.Example.test MX\nother.test A", mixed());
    let mut scratch = Vec::new();
    let asked: Vec<Question> = choices(&plan, 0)
        .map(|choice| choice.question)
        .filter(|question| message(&plan, *question)[12] > 5)
        .take(60)
        .collect();
    let responses: Vec<Vec<u8>> = asked
        .iter()
        .map(|question| response(&message(&plan, *question)))
        .collect();
    for (at, question) in asked.iter().enumerate() {
        for (other, octets) in responses.iter().enumerate() {
            let fits = plan.is_answered_by(*question, octets, &mut scratch);
            assert_eq!(fits, at == other);
        }
        // RFC 4343: names are compared without case.
        let mut shouted = responses[at].clone();
        let end = shouted.len() - 4;
        shouted[12..end].make_ascii_uppercase();
        assert!(plan.is_answered_by(*question, &shouted, &mut scratch));
        let plain = Question::plain(question.template);
        assert!(!plan.is_answered_by(plain, &responses[at], &mut scratch));
    }
}

#[test]
fn padding_counts_labels_of_one_length() {
    let labels = Labels::unique(Some((20, 20)), 1).unwrap();
    let options = QueryOptions {
        edns: Some(Edns {
            padding_block_octets: std::num::NonZeroU16::new(128),
            ..Edns::default()
        }),
        label_octets: labels.wire_octets_max(),
        ..QueryOptions::default()
    };
    let questions = zone_question("random-labels", "zone.test", &options).unwrap();
    assert!(questions.edns_uses().padding);
    let plan = Plan {
        questions: Arc::new(questions),
        question_source: QuestionSource {
            labels: Some(labels),
            ..QuestionSource::default()
        },
        ..plan("a A", QuestionSource::default())
    };
    let choice = choices(&plan, 0).next().unwrap();
    let octets = message(&plan, choice.question);
    assert_eq!(octets.len(), 128);
    assert!(Message::from_vec(&octets).is_ok());
}

#[test]
fn zones_that_are_no_names_are_refused() {
    let error = zone_question("walk", "a..b", &QueryOptions::default()).unwrap_err();
    assert!(error.to_string().starts_with("walk: `a..b`: "), "{error}");
    let root = zone_question("walk", ".", &QueryOptions::default()).unwrap();
    assert_eq!((root.len(), root.get(0).question_octets), (1, 5));
}

proptest! {
    #[test]
    fn any_question_of_a_plan_matches_its_own_response(
        label in 0..u64::from(u32::MAX),
        qtype in 0..3u8,
    ) {
        let plan = plan("a.test MX\nb.test TXT", mixed());
        let question = Question::plain(1).with_qtype(qtype).with_label(label);
        let octets = message(&plan, question);
        let mut scratch = vec![1; 9];
        prop_assert!(plan.is_answered_by(question, &response(&octets), &mut scratch));
    }

    #[test]
    fn octets_that_are_no_response_are_survived(octets: Vec<u8>, label in 0..9u64) {
        let plan = plan("a.test MX", mixed());
        let question = Question::plain(0).with_label(label);
        let _ = plan.is_answered_by(question, &octets, &mut Vec::new());
    }
}
