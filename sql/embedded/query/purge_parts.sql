delete from WF_STATE_PARTS where PART_ID between ?1 << 20 and ((?1 + 1) << 20) - 1
