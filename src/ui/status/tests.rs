use super::news;

#[test]
fn new_lines_are_counted_besides_new_items() {
    let labels = [(0, 0), (0, 1), (0, 1360), (2, 0), (1, 1), (3, 136)].map(|of| news(of, "v"));
    let wanted =
        ["more v", "1 new line v", "1,360 new lines v", "2 new v", "1 new line + 1 v", "136 new lines + 3 v"];
    assert_eq!(labels.each_ref().map(|text| text.trim()), wanted);
}
