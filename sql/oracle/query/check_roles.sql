select R.ROLE from SESSION_ROLES R order by R.ROLE
