use turnkeep_log::Text;

use super::*;

#[test]
fn what_is_no_event_passes() {
    for text in ["", "nonsense", "[]", "7", r#""message.updated""#, "{}", r#"{"type":7}"#] {
        let text = Text::from(text);
        assert_eq!(reduce(&text), None);
        assert_eq!(ReasoningFilter::default().pass(&text), Passed::Kept);
        let mut live = LiveParts::new(1 << 20);
        live.apply(&text);
        assert!(live.is_empty());
    }
}
