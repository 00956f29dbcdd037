update WF_STREAM set CLAIMED_BY = ?, ATTEMPTS = ?, NEXT_ATTEMPT_ON_UTC = ?, LAST_ERROR = ?, DELIVERED_ON_UTC = ?, DELIVERIES = ?, OUTCOME_UNKNOWN = ?, GIVEN_UP_ON_UTC = ?
where ENTRY_NO = ? and PROCESSED = 0 and NEXT_ATTEMPT_ON_UTC is coalesce(?, NEXT_ATTEMPT_ON_UTC)
  and (? or coalesce((select N.NODE from WF_NODES N where N.NODE_NO = WF_STREAM.CLAIMED_BY), '') = ?)
  and (not ? or ATTEMPTS = ? and (CLAIMED_BY is null or ATTEMPTS = 0))
