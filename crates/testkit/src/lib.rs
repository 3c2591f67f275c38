//! A scripted model server over real HTTP, for tests and for trying things by hand
