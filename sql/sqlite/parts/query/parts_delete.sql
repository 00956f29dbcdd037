delete from WF_STATE_PARTS where PART_ID >= ? and PART_ID < ?
