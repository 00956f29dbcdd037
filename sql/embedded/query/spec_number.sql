select SPEC_NO from WF_WAIT_SPECS where EVENT_TYPE = ? and SPEC = ?
