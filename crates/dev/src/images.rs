//! Pictures that go with an instruction: checked, copied, sent.

use std::path::{Path, PathBuf};

use base64::{Engine, prelude::BASE64_STANDARD};
use codespar_protocol::{ContentBlock, Image};

use crate::{Failure, ImageRef};

/// Of the file. In a request it is base64, which is a third more.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// Copies pictures to where the task can find them later. Each is looked at first. The task may run
/// later, in another process, when the user's file is gone or changed. On an error the copies made
/// so far stay in `dir`; it is that of the task.
pub fn keep_images(files: &[PathBuf], dir: &Path) -> Result<Vec<ImageRef>, Failure> {
    let mut kept = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let (bytes, media_type) = check(file)?;
        let path = dir.join(format!("image-{index}"));
        let written = std::fs::create_dir_all(dir).and_then(|()| std::fs::write(&path, bytes));
        written.map_err(|error| Failure::Broken(format!("{}: {error}", path.display())))?;
        kept.push(ImageRef {
            path,
            media_type: media_type.to_owned(),
        });
    }
    Ok(kept)
}

/// Whether a picture can go with an instruction, and why not.
pub fn check_image(file: &Path) -> Result<(), Failure> {
    check(file).map(|_| ())
}

/// The same for one that is not in a file yet; the reason has no name in it.
pub fn check_image_bytes(bytes: &[u8]) -> Result<(), String> {
    check_size(bytes.len() as u64)?;
    check_type(bytes).map(|_| ())
}

fn check_size(bytes: u64) -> Result<(), String> {
    match bytes > MOST_BYTES {
        true => Err(format!(
            "has {:.1} MB; pictures may have at most 4 MB",
            bytes as f64 / (1024.0 * 1024.0)
        )),
        false => Ok(()),
    }
}

fn check_type(bytes: &[u8]) -> Result<&'static str, String> {
    media_type(bytes).ok_or_else(|| "is not a PNG, JPEG, GIF or WebP picture".to_owned())
}

fn check(file: &Path) -> Result<(Vec<u8>, &'static str), Failure> {
    let refused = |reason: String| Failure::Refused(format!("{}: {reason}", file.display()));
    let meta = std::fs::metadata(file).map_err(|error| refused(error.to_string()))?;
    if !meta.is_file() {
        return Err(refused("is not a file".to_owned()));
    }
    check_size(meta.len()).map_err(refused)?;
    let bytes = std::fs::read(file).map_err(|error| refused(error.to_string()))?;
    let media_type = check_type(&bytes).map_err(refused)?;
    Ok((bytes, media_type))
}

/// By its first bytes; a name can say anything.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

/// The blocks that carry them. Read anew for each request. The type is the one found when they were
/// copied.
pub(crate) fn blocks(images: &[ImageRef]) -> Result<Vec<ContentBlock>, Failure> {
    images
        .iter()
        .map(|image| {
            let broken = |error: &dyn std::fmt::Display| {
                Failure::Broken(format!("{}: {error}", image.path.display()))
            };
            let bytes = std::fs::read(&image.path).map_err(|error| broken(&error))?;
            Image::base64(&image.media_type, &BASE64_STANDARD.encode(bytes))
                .map(ContentBlock::Image)
                .map_err(|error| broken(&error))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_known_by_their_bytes_and_others_refused_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let png = dir.path().join("shot.txt");
        std::fs::write(&png, b"\x89PNG\r\n\x1a\nrest").unwrap();
        let kept = keep_images(&[png], &dir.path().join("kept")).unwrap();
        assert_eq!(kept[0].media_type, "image/png");
        assert_eq!(blocks(&kept).unwrap().len(), 1);

        let text = dir.path().join("a.png");
        std::fs::write(&text, "not a picture").unwrap();
        let error = keep_images(&[text], dir.path()).unwrap_err().to_string();
        assert!(
            error.ends_with("a.png: is not a PNG, JPEG, GIF or WebP picture"),
            "{error}"
        );

        let large = dir.path().join("large.png");
        let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
        bytes.resize(4 * 1024 * 1024 + 1, 0);
        std::fs::write(&large, bytes).unwrap();
        let error = keep_images(&[large], dir.path()).unwrap_err().to_string();
        assert!(error.contains("at most 4 MB"), "{error}");
    }
}
