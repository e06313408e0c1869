"""Tell what each real client does with a skill, and whether the skill keeps what it promises."""
