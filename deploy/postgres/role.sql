-- A role and a database for the nodes of Leasehold, and for nothing else. Run it as a superuser:
--   psql -v password="$(cat journal-password)" -f role.sql

CREATE ROLE leasehold LOGIN PASSWORD :'password' CONNECTION LIMIT 20;
CREATE DATABASE leasehold OWNER leasehold;
REVOKE ALL ON DATABASE leasehold FROM PUBLIC;
-- Lets a node see standbys with their state; without it every connection that streams counts as one.
GRANT pg_monitor TO leasehold;
