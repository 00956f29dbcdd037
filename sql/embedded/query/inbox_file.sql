update WF_INBOX set RULE_HASH = ?, KEY_HASH = ? where EVENT_KEY = ? and RULE_HASH is null
