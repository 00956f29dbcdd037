select exists (select 1 from WF_INBOX where EVENT_TYPE = ? and RULE_HASH < ?) or exists (select 1 from WF_INBOX where EVENT_TYPE = ? and RULE_HASH > ?) as OTHERS
