delete from WF_INBOX where EVENT_KEY = ?
