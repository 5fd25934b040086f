//! Opens and edits the texts and images that a prompt refers to.

use std::path::Path;

use crate::host::attachments::Attachments;
use crate::host::{browser, editor};
use crate::model::{Attachment, AttachmentKind, AttachmentLabel};

pub(super) fn open_attachment(attachments: &Attachments, label: &AttachmentLabel) -> Result<(), String> {
    let path = attachments.file_of(label).ok_or("The image is missing.")?;
    browser::open(&path.to_string_lossy()).map_err(|error| format!("Could not open the image: {error}."))
}

/// Edits a pasted text and returns the draft with the label of the new text; `None` if it is unchanged.
pub(super) fn edit_pasted(
    template: Option<&str>,
    draft: &str,
    label: &AttachmentLabel,
    folder: &Path,
    attachments: &Attachments,
) -> Result<Option<String>, String> {
    let text = attachments.find(label).and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or("The pasted text is missing.")?;
    let Some(edited) = editor::edit_text(template, &text, folder)? else { return Ok(None) };
    let edited = match label.kind {
        AttachmentKind::Session => Attachment::of_session(&label.name, &edited),
        AttachmentKind::Text | AttachmentKind::Image => Attachment::of_text(&edited),
    };
    attachments.save(&edited).map_err(|error| format!("Could not save the edited text: {error}."))?;
    let mut draft = draft.to_owned();
    draft.replace_range(label.range.clone(), &edited.label());
    Ok(Some(draft))
}
