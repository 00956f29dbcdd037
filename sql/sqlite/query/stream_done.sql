update WF_STREAM set PROCESSED = 1, PROCESSED_ON_UTC = ?, GIVEN_UP_ON_UTC = ?, CLAIMED_BY = null, NEXT_ATTEMPT_ON_UTC = null,
  OUTCOME_UNKNOWN = (? and (OUTCOME_UNKNOWN or CLAIMED_BY is not null and ATTEMPTS > 0))
where ENTRY_NO = ? and PROCESSED = 0
  and (? or coalesce((select N.NODE from WF_NODES N where N.NODE_NO = WF_STREAM.CLAIMED_BY), '') = ?)
