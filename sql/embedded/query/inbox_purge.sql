delete from WF_INBOX where EVENT_NO in (select EVENT_NO from WF_INBOX where EXPIRES_ON_UTC < ? order by EXPIRES_ON_UTC limit ?)
