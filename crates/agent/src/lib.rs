//! The agent loop: context, compaction, agent definitions, prompts, skills
