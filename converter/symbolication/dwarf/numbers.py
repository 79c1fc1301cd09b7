"""Codes of entries, attributes and units (DWARF 5, section 7.5), as far as they are read."""

TAGS = {
    "DW_TAG_class_type": 0x02, "DW_TAG_lexical_block": 0x0b, "DW_TAG_structure_type": 0x13, "DW_TAG_union_type": 0x17,
    "DW_TAG_inlined_subroutine": 0x1d, "DW_TAG_subprogram": 0x2e, "DW_TAG_namespace": 0x39,
    "DW_TAG_partial_unit": 0x3c,
}  # fmt: skip
ATTRIBUTES = {
    "DW_AT_sibling": 0x01, "DW_AT_name": 0x03, "DW_AT_stmt_list": 0x10, "DW_AT_low_pc": 0x11, "DW_AT_high_pc": 0x12,
    "DW_AT_language": 0x13, "DW_AT_comp_dir": 0x1b, "DW_AT_producer": 0x25, "DW_AT_abstract_origin": 0x31,
    "DW_AT_decl_column": 0x39, "DW_AT_decl_file": 0x3a, "DW_AT_decl_line": 0x3b, "DW_AT_specification": 0x47,
    "DW_AT_ranges": 0x55, "DW_AT_call_column": 0x57, "DW_AT_call_file": 0x58, "DW_AT_call_line": 0x59,
    "DW_AT_linkage_name": 0x6e, "DW_AT_str_offsets_base": 0x72, "DW_AT_addr_base": 0x73, "DW_AT_rnglists_base": 0x74,
    "DW_AT_dwo_name": 0x76, "DW_AT_MIPS_linkage_name": 0x2007, "DW_AT_GNU_dwo_name": 0x2130,
    "DW_AT_GNU_dwo_id": 0x2131, "DW_AT_GNU_ranges_base": 0x2132, "DW_AT_GNU_addr_base": 0x2133,
    "DW_AT_GNU_discriminator": 0x2136,
}  # fmt: skip
DW_UT_compile, DW_UT_type, DW_UT_skeleton = 1, 2, 4
DW_UT_split_compile, DW_UT_split_type = 5, 6
